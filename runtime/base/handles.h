/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handles.h: which handles of the public calls are open.
 *
 * Owns: the set of open objects, and those closed lately. Public calls ask it first, so that NULL, a handle
 * that was closed, and a handle of another kind are refused with a sentence. Any thread may call. The memory
 * of a closed object stays for a while: as long as it does, no new object gets its address.
 */
#ifndef WEIR_RUNTIME_HANDLES_H
#define WEIR_RUNTIME_HANDLES_H

/** enum weir_handle_kind - what a handle is of */
enum weir_handle_kind {
	WEIR_HANDLE_CONTEXT,
	WEIR_HANDLE_STORAGE,
	WEIR_HANDLE_CACHE,
	WEIR_HANDLE_REGISTRATION,
	WEIR_HANDLE_BATCH,
	WEIR_HANDLE_POOL,
	WEIR_HANDLE_GPUS,
	WEIR_HANDLE_KINDS,
};

/**
 * weir_handle_add() - @object, from malloc(), is open from now on
 * @object: the object
 * @kind: what it is
 * @name: for sentences, such as a URI; copied
 *
 * Return: 0 or -ENOMEM with a sentence.
 */
int weir_handle_add(void *object, enum weir_handle_kind kind, const char *name);

/**
 * weir_handle_check() - @handle is an open object of @kind
 * @handle: as the caller of a public call gave it
 * @kind: what it has to be
 * @call: the public call, for the sentence
 *
 * Return: 0 or -EINVAL with a sentence. It does not touch what @handle points to.
 */
int weir_handle_check(const void *handle, enum weir_handle_kind kind, const char *call);

/** weir_handle_retire() - @object is closed; frees it, some time later */
void weir_handle_retire(void *object);

/**
 * weir_given() - @pointer is not NULL
 * @pointer: a parameter of a public call
 * @call: the public call
 * @name: the parameter
 *
 * Return: 0 or -EINVAL with a sentence.
 */
int weir_given(const void *pointer, const char *call, const char *name);

#endif
