# The launcher: static, as the root that it runs in holds nothing.

LAUNCHER         := $(wildcard launcher/*.c)
LAUNCHER_HEADERS := $(wildcard launcher/*.h)

all: $(BUILD)/dsec-launcher

$(BUILD)/dsec-launcher: $(LAUNCHER:%.c=$(BUILD)/%.o) $(COMMON:%.c=$(BUILD)/launcher/%.o)
	$(MUSL_CC) -static -o $@ $^

$(BUILD)/launcher/%.o: launcher/%.c $(HEADERS) $(LAUNCHER_HEADERS)
	@mkdir -p $(@D)
	$(MUSL_CC) $(CFLAGS) -c -o $@ $<

$(BUILD)/launcher/common/%.o: common/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(MUSL_CC) $(CFLAGS) -c -o $@ $<

# For its tests: what stands in for aether, and what looks into the pinned namespace.
$(BUILD)/launcher_pid1 $(BUILD)/launcher_pinned: $(BUILD)/%: test/%.c
	@mkdir -p $(@D)
	$(MUSL_CC) $(CFLAGS) -static -o $@ $<

$(BUILD)/spec_fuzz: CFLAGS += -Ilauncher
$(BUILD)/spec_fuzz: launcher/spec.c launcher/spec-proc.c launcher/failure.c $(LAUNCHER_HEADERS)
