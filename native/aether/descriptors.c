#include "descriptors.h"

#include <errno.h>

#include "kernel.h"

/* A handful of numbers, and no allocation after a fork. */
static void sort(int *numbers, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		int number = numbers[i];
		size_t at = i;

		for (; at > 0 && numbers[at - 1] > number; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = number;
	}
}

int descriptors_keep(int *kept, size_t count)
{
	int last = 2;

	sort(kept, count);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] > last + 1 &&
		    kernel_close_range((unsigned int)last + 1, (unsigned int)kept[i] - 1, 0))
			return -errno;
		last = kept[i] > last ? kept[i] : last;
	}
	return kernel_close_range((unsigned int)last + 1, ~0u, 0) ? -errno : 0;
}
