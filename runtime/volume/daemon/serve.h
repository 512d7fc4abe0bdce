/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.h: the daemon's sockets and its loop.
 *
 * Owns: connections of clients and tools, one thread for all. While the daemon is at work with engines,
 * sockets are looked at between two commands, for calls that do not wait (methods.h). A client that does not
 * take its answer within a second is disconnected.
 */
#ifndef WEIR_VOLUMED_SERVE_H
#define WEIR_VOLUMED_SERVE_H

#include "daemon.h"

enum { VOLUMED_LISTENERS = 4 };

/**
 * volumed_serve() - answer calls, and do what is due, until a signal comes
 * @sockets: that listen; @count of them
 * @signals: a signalfd; it is readable when the daemon is to end. Return: that signal
 */
int volumed_serve(struct volumed *d, const int *sockets, unsigned count, int signals);

#endif
