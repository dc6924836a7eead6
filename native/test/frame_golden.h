/* Golden frames: text files that the TypeScript codec wrote; see tools/generate/golden-frames.mjs.
 */
#ifndef DSEC_FRAME_GOLDEN_H
#define DSEC_FRAME_GOLDEN_H

/*
 * Decodes every frame of the file, compares its meaning and encodes it again to the same bytes.
 * Returns the number of frames, or -1 after printing what differs.
 */
int golden_check_frames(const char *file);

/* Sees that every frame of the file is refused with -EPROTO. Returns as above. */
int golden_check_broken(const char *file);

/* Writes every frame of the file as an input of fuzz/frame_fuzz.c below `directory`. Returns as
 * above. */
int golden_write_corpus(const char *file, const char *directory);

#endif
