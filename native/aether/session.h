/*
 * Sessions: a shell that lives on between commands, with its directory and variables. It reads its
 * script from a pipe, to which each command is added as one `eval`, and reports each end on another
 * pipe with a random word that only this command's line holds. Still the shell is the sandbox's
 * own, so that a status from here is never trusted. Commands of one session run one after the
 * other.
 *
 * What is written while no command runs is dropped. Standard input is the session's: an end of
 * input ends it for the commands that follow as well, except on a terminal.
 */
#ifndef AETHER_SESSION_H
#define AETHER_SESSION_H

#include "frame.h"

struct command;
struct inlet;

int session_open(const struct dsec_frame *frame);
int session_close(const struct dsec_frame *frame);
/* Its answer comes when the shell has ended. */
int session_watch(const struct dsec_frame *frame);

/* Runs the command's text in the session that the message names; says how that went by its
 * functions. */
void session_run(struct command *command, const struct dsec_msg_exec_start *message);
/* The outputs have space again. */
void session_resume_outputs(struct command *command);
void session_signal(struct command *command, int signal);
/* Ends the command, and the shell too when it does not come back. */
void session_kill(struct command *command);
struct inlet *session_input(struct command *command);
void session_resize(struct command *command, const struct dsec_msg_pty_size *size);
/* The command goes away. */
void session_leave(struct command *command);

#endif
