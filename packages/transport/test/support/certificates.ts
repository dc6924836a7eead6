/** Self-signed certificates of `localhost`, for tests alone. */

export const ONE = {
  cert: [
    '-----BEGIN CERTIFICATE-----',
    'MIIBmjCCAUGgAwIBAgITSSkVY/QY1rD7AwzwqIKBgEILgzAKBggqhkjOPQQDAjAO',
    'MQwwCgYDVQQDDANvbmUwIBcNMjYxMjAxMDI1ODU2WhgPMjEyNjExMDcwMjU4NTZa',
    'MA4xDDAKBgNVBAMMA29uZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKAjzr5j',
    '9NYOHzMze46sxX7+ZuK3BecHZ5NZBreUU/HHPt7vO6RcLvWh3K7dUqsMIMp/Mjm3',
    '3U9zWN2XpGfPrR+jfDB6MB0GA1UdDgQWBBS96sqNe/5B8TZBL2TfeIIe+99OezAf',
    'BgNVHSMEGDAWgBS96sqNe/5B8TZBL2TfeIIe+99OezAPBgNVHRMBAf8EBTADAQH/',
    'MCcGA1UdEQQgMB6CCWxvY2FsaG9zdIILb25lLmV4YW1wbGWHBH8AAAEwCgYIKoZI',
    'zj0EAwIDRwAwRAIgTRB0lR6QGb+CKvSQOWsBEeUkBeb5ZZbWuWatGRoOkjgCIB0R',
    'okQzhs9AnuWuyKxrCrcs7wcs+LDNePcPmp7b+aeW',
    '-----END CERTIFICATE-----',
    '',
  ].join('\n'),
  key: [
    '-----BEGIN PRIVATE KEY-----',
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXloN/hqy9QPCkPTr',
    'DFN6dnL9jJzBA4zv7e/vEINZrpShRANCAASgI86+Y/TWDh8zM3uOrMV+/mbitwXn',
    'B2eTWQa3lFPxxz7e7zukXC71odyu3VKrDCDKfzI5t91Pc1jdl6Rnz60f',
    '-----END PRIVATE KEY-----',
    '',
  ].join('\n'),
};

export const TWO = {
  cert: [
    '-----BEGIN CERTIFICATE-----',
    'MIIBnDCCAUKgAwIBAgIUANXWBSnnRmpr2oT/fLXuzq20BDEwCgYIKoZIzj0EAwIw',
    'DjEMMAoGA1UEAwwDdHdvMCAXDTI2MTIwMTAyNTg1NloYDzIxMjYxMTA3MDI1ODU2',
    'WjAOMQwwCgYDVQQDDAN0d28wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR9lOTY',
    'z5MUaHgA3JS2uxbgpyETK2uGabuAlLxt6dCNHvgd+PH5jnE/UfQpU80VbDb0eN+/',
    'hKgiCkwzCfbGfN9no3wwejAdBgNVHQ4EFgQU0GaRdCh/nPnJdUEHrye6uDkhW8kw',
    'HwYDVR0jBBgwFoAU0GaRdCh/nPnJdUEHrye6uDkhW8kwDwYDVR0TAQH/BAUwAwEB',
    '/zAnBgNVHREEIDAegglsb2NhbGhvc3SCC3R3by5leGFtcGxlhwR/AAABMAoGCCqG',
    'SM49BAMCA0gAMEUCIHmSXYopbx6oRkUtCQ6v1cMitXSpGrlHhQXkRzDeKO3fAiEA',
    'p4Vdbor/I7R4boLmzzOovELt0jiW7FA02PdJG/uA7Y8=',
    '-----END CERTIFICATE-----',
    '',
  ].join('\n'),
  key: [
    '-----BEGIN PRIVATE KEY-----',
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg36w9UwshtawIO0Iz',
    'HjIRjWuptRUu/kEJjh8f0n9AfLShRANCAAR9lOTYz5MUaHgA3JS2uxbgpyETK2uG',
    'abuAlLxt6dCNHvgd+PH5jnE/UfQpU80VbDb0eN+/hKgiCkwzCfbGfN9n',
    '-----END PRIVATE KEY-----',
    '',
  ].join('\n'),
};
