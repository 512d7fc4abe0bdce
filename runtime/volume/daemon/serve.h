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

#include "hosts.h"

enum { VOLUMED_LISTENERS = 4 };

/**
 * struct volumed_listeners - where calls come in
 * @sockets: that listen; @count of them
 * @hosts: that have to prove who they are, but for local sockets; NULL or none: nobody has to
 */
struct volumed_listeners {
	const int *sockets;
	unsigned count;
	struct volumed_hosts *hosts;
};

/**
 * volumed_serve() - answer calls, and do what is due, until a signal comes
 * @signals: a signalfd; it is readable when the daemon is to end
 *
 * Return: that signal; or a negative errno with a sentence: it cannot wait for its sockets.
 */
int volumed_serve(struct volumed *d, const struct volumed_listeners *listeners, int signals);

#endif
