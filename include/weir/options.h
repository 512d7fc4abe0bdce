/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: option structures in place, the same lines in C11 and in C++ from C++11 on.
 *
 * Owns: WEIR_OPTIONS(). C++ has no address of a temporary, and designators only from C++20 on and in order;
 * there a function without a name assigns the members one after the other.
 */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#ifndef __cplusplus

/**
 * WEIR_OPTIONS() - an option structure in place
 * @kind: context, storage, cache, share, array, chain or register
 *
 * weir_cache_create(context, WEIR_OPTIONS(cache, .bytes = 64 << 20), &cache). In C++ at most 16 members at
 * once.
 *
 * In C the structure lives as long as the block around it. In C++ it ends with the call that it is made for,
 * and a pointer to it dangles behind that: keep it as "auto options = WEIR_OPTIONS(...)", which is the
 * structure itself and is given to calls as it is. clang++ warns of such a pointer (-Wdangling), g++ does
 * not.
 */
#define WEIR_OPTIONS(kind, ...)                                                                              \
	(&(struct weir_##kind##_options){ .size = sizeof(struct weir_##kind##_options), __VA_ARGS__ })

#else

/* A pointer to what has ended is seen by clang, where it is told. */
#ifdef __clang__
#define WEIR_OPTIONS_BOUND_ [[clang::lifetimebound]]
#else
#define WEIR_OPTIONS_BOUND_
#endif

/** struct weir_options_in_place - options that live until the end of the call they are made for, or as long
 * as the variable that they are kept in */
template <typename options> struct weir_options_in_place {
	options value;
	operator const options *() const WEIR_OPTIONS_BOUND_
	{
		return &value;
	}
};

/* Each of up to 16 arguments as an assignment to a member, "options_ .bytes = 64"; those beyond the last are
 * empty. */
#define WEIR_OPTIONS_ASSIGN_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ...)                            \
	(void)(options_ a);                                                                                  \
	(void)(options_ b);                                                                                  \
	(void)(options_ c);                                                                                  \
	(void)(options_ d);                                                                                  \
	(void)(options_ e);                                                                                  \
	(void)(options_ f);                                                                                  \
	(void)(options_ g);                                                                                  \
	(void)(options_ h);                                                                                  \
	(void)(options_ i);                                                                                  \
	(void)(options_ j);                                                                                  \
	(void)(options_ k);                                                                                  \
	(void)(options_ l);                                                                                  \
	(void)(options_ m);                                                                                  \
	(void)(options_ n);                                                                                  \
	(void)(options_ o);                                                                                  \
	(void)(options_ p);

/* As in C: WEIR_OPTIONS(cache, .bytes = 64 << 20), for the call's duration. */
#define WEIR_OPTIONS(...) WEIR_OPTIONS_(__VA_ARGS__, , , , , , , , , , , , , , , , , )
#define WEIR_OPTIONS_(kind, ...)                                                                             \
	([&]() -> weir_options_in_place<struct weir_##kind##_options> {                                      \
		weir_options_in_place<struct weir_##kind##_options> made_ = {};                              \
		struct weir_##kind##_options &options_ = made_.value;                                        \
		options_.size = sizeof(options_);                                                            \
		WEIR_OPTIONS_ASSIGN_(__VA_ARGS__, )                                                          \
		return made_;                                                                                \
	}())

#endif
#endif
