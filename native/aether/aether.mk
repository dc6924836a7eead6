# aether, the agent inside a sandbox: static, so that it runs over any root file system.

AETHER         := $(wildcard aether/*.c)
AETHER_HEADERS := $(wildcard aether/*.h)
AETHER_CFLAGS  := $(CFLAGS) -Wshadow -Iaether -ffunction-sections -fdata-sections

.PHONY: aether-asan

all: $(BUILD)/aether $(BUILD)/aether_start

$(BUILD)/aether: $(AETHER) $(COMMON) $(HEADERS) $(AETHER_HEADERS)
	@mkdir -p $(@D)
	$(MUSL_CC) $(AETHER_CFLAGS) -static -Wl,--gc-sections -o $@ $(filter %.c,$^)

# Starts it for tests.
$(BUILD)/aether_start: test/aether_start.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $<

# The same under ASan and UBSan, for the tests; the sanitizers need the system's own libc.
aether-asan: $(BUILD)/aether-asan

$(BUILD)/aether-asan: $(AETHER) $(COMMON) $(HEADERS) $(AETHER_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(AETHER_CFLAGS) $(SAN) -o $@ $(filter %.c,$^)

$(BUILD)/passwd_fuzz: CFLAGS += -Iaether
$(BUILD)/passwd_fuzz: aether/passwd.c aether/passwd.h
