"""What both faces of the SDK share: requests, answers, retries and results as data."""
