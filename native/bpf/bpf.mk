# Programs for the kernel's packet filter. A user's machine needs no compiler: it loads what lies here.

BPF_SOURCES := $(wildcard bpf/*.bpf.c)
BPF_HEADERS := $(wildcard bpf/*.h)
BPF_FLAGS   := -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-const-variable
# Where the kernel's headers of this machine's architecture lie.
BPF_INCLUDE ?= /usr/include/$(shell $(CC) -dumpmachine)

ifeq ($(CLANG),)
.PHONY: without-clang
all: without-clang
without-clang:
	@echo "no clang: the packet filter is not built. Install clang, or set CLANG."
else
all: $(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/bpf/%.bpf.o)
endif

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(BPF_HEADERS)
	@mkdir -p $(@D)
	$(CLANG) -target bpf -mcpu=v3 $(BPF_FLAGS) -idirafter $(BPF_INCLUDE) -c -o $@ $<
