# The platform's tools for sandboxes that grade: one directory, as it is mounted at /.dsec/platform.

RUNNER := $(wildcard runner/*.c)

all: $(BUILD)/platform/runner $(BUILD)/platform/run_pytest.py

$(BUILD)/platform/runner: $(RUNNER) runner/runner.h runner/kernel.h
	@mkdir -p $(@D)
	$(MUSL_CC) $(CFLAGS) -static -o $@ $(RUNNER)

$(BUILD)/platform/run_pytest.py: runner/run_pytest.py
	@mkdir -p $(@D)
	cp $< $@
