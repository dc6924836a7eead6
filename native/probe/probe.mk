# Hostile actions for tests, in one static program that any root file system can hold.

PROBE := $(wildcard probe/*.c)

$(BUILD)/hostile_probe: $(PROBE) probe/probe.h
	@mkdir -p $(@D)
	$(MUSL_CC) $(CFLAGS) -static -pthread -o $@ $(PROBE)
