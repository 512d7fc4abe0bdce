/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir.hpp: weir for people who write C++: objects that close themselves, arrays with operator[].
 *
 * Owns: nothing that weir.h, array.h and writer.h have not: every function here is one or two calls of
 * theirs. Optional; C++11, host and device. Host calls throw weir::error with the sentence of
 * weir_last_error(). Kernel arguments are plain structures still: weir::array<T> and weir::writer<T> are
 * copied into them like struct weir_array.
 */
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <weir/weir.h>
#include <weir/writer.h>

namespace weir
{

/** class error - what went wrong, as a sentence, and its negative errno */
class error : public std::runtime_error
{
      public:
	explicit error(int code) : std::runtime_error(weir_last_error()), code_(code)
	{
	}
	int code() const
	{
		return code_;
	}

      private:
	int code_;
};

/** check() - throw what a call of weir.h returned, unless it is 0 */
inline void check(int code)
{
	if (code)
		throw error(code);
}

/** struct can_be_element - 1, 2, 4 or 8 bytes, or a multiple of 8, that may be copied bit by bit */
template <typename T> struct can_be_element {
	static const bool value = std::is_trivially_copyable<T>::value &&
				  (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) % 8 == 0);
};

/**
 * struct array - elements on storage, read by lanes: the model is BaM's array<T>
 * @raw: what it is for the rest of weir, views, runs and prefetches included
 *
 * array[i] reads through the cache, as weir_array_get_u32() and its like do; any lanes may, and errors are
 * recorded as theirs. T may be float or double, or a structure of whole words of 8 bytes.
 */
template <typename T> struct array {
	static_assert(can_be_element<T>::value,
		      "elements have 1, 2, 4 or 8 bytes or a multiple of 8, and no constructors");
	struct weir_array raw;

	WEIR_METHOD u64 size() const
	{
		return raw.count;
	}

	WEIR_METHOD T operator[](u64 index) const
	{
		struct weir_array *from = const_cast<struct weir_array *>(&raw);
		u64 words[(sizeof(T) + 7) / 8], byte = raw.first_byte + index * sizeof(T);
		T value;
		u32 there = weir_array_has_of(from, index, sizeof(T));

		for (u32 i = 0; i < (sizeof(T) + 7) / 8; i++) { /* of less than a word, the bytes in it */
			u64 at = byte + i * 8;

			words[i] =
				there ? weir_array_words(from, at & ~(u64)7, 1).word[0] >> ((at & 7) * 8) : 0;
		}
		__builtin_memcpy(&value, words, sizeof(T));
		return value;
	}
};

/**
 * struct writer - elements on storage, read and written by lanes
 * @raw: what it is for the rest of weir
 *
 * writer[i] = value, T value = writer[i], and atomic changes of elements of 4 and 8 bytes, which return the
 * old value.
 */
template <typename T> struct writer {
	static_assert(can_be_element<T>::value,
		      "elements have 1, 2, 4 or 8 bytes or a multiple of 8, and no constructors");
	struct weir_writer raw;

	/** struct element - what writer[i] stands for */
	struct element {
		writer *of;
		u64 index;

		WEIR_METHOD element(writer *of_, u64 index_) : of(of_), index(index_)
		{
		}
		WEIR_METHOD element(const element &other) : of(other.of), index(other.index)
		{
		}
		WEIR_METHOD operator T() const
		{
			return of->get(index);
		}
		WEIR_METHOD const element &operator=(T value) const
		{
			of->put(index, value);
			return *this;
		}
		WEIR_METHOD const element &operator=(const element &other) const
		{
			return *this = static_cast<T>(other);
		}
	};

	WEIR_METHOD u64 size() const
	{
		return raw.array.count;
	}

	WEIR_METHOD element operator[](u64 index)
	{
		return element(this, index);
	}

	WEIR_METHOD T get(u64 index) const
	{
		return reinterpret_cast<const array<T> *>(&raw.array)->operator[](index);
	}

	WEIR_METHOD void put(u64 index, T value)
	{
		u64 words[(sizeof(T) + 7) / 8] = { 0 }, byte = raw.array.first_byte + index * sizeof(T);
		u32 has = weir_array_has_of(&raw.array, index, sizeof(T));
		struct weir_u128 word;

		__builtin_memcpy(words, &value, sizeof(T));
		word.high = 0;
		for (u32 i = 0; i < (sizeof(T) + 7) / 8; i++) {
			word.low = words[i];
			(void)weir_writer_bytes(&raw, byte + i * 8, has, WEIR_ACCESS_STORE,
						sizeof(T) < 8 ? sizeof(T) : 8, word);
		}
	}

	WEIR_METHOD T add(u64 index, T value)
	{
		return change<WEIR_ACCESS_ADD>(index, value, 0);
	}
	WEIR_METHOD T min(u64 index, T value)
	{
		return change<WEIR_ACCESS_MIN>(index, value, 0);
	}
	WEIR_METHOD T max(u64 index, T value)
	{
		return change<WEIR_ACCESS_MAX>(index, value, 0);
	}
	WEIR_METHOD T exchange(u64 index, T value)
	{
		return change<WEIR_ACCESS_EXCHANGE>(index, value, 0);
	}
	WEIR_METHOD T cas(u64 index, T expected, T value)
	{
		return change<WEIR_ACCESS_CAS>(index, value, expected);
	}

      private:
	template <u32 kind> WEIR_METHOD T change(u64 index, T value, T expected)
	{
		static_assert((sizeof(T) == 4 || sizeof(T) == 8) && std::is_unsigned<T>::value,
			      "atomic changes are of unsigned elements of 4 or 8 bytes");
		struct weir_u128 both;

		both.low = value;
		both.high = expected;
		return static_cast<T>(weir_writer_element(&raw, index, kind, sizeof(T), both));
	}
};

/* An object that weir.h opens: closed with its owner, moved but never copied. */
template <typename object, int (*close)(object *)> class handle
{
      public:
	handle() : object_(nullptr)
	{
	}
	handle(handle &&other) noexcept : object_(other.object_)
	{
		other.object_ = nullptr;
	}
	handle &operator=(handle &&other) noexcept
	{
		std::swap(object_, other.object_);
		return *this;
	}
	~handle()
	{
		(void)close(object_); /* it has said on stderr what is lost; close() returns it */
	}
	object *get() const
	{
		return object_;
	}
	object **out()
	{
		return &object_;
	}
	/* close() - now, and throw what it returns */
	void shut()
	{
		object *closing = object_;

		object_ = nullptr;
		check(close(closing));
	}

      private:
	object *object_;
};

/** class context - a device; closes what was opened with it */
class context : public handle<struct weir_context, weir_context_close>
{
      public:
	explicit context(const char *name = "auto", const struct weir_context_options *options = nullptr)
	{
		check(weir_context_open(name, options, out()));
	}
	template <typename arguments>
	void launch(const char *kernel, uint32_t blocks, uint32_t threads, const arguments &args)
	{
		launch_on(nullptr, kernel, blocks, threads, args);
	}
	template <typename arguments>
	void launch_on(void *stream, const char *kernel, uint32_t blocks, uint32_t threads,
		       const arguments &args)
	{
		check(weir_launch_on(get(), stream, kernel, blocks, threads, &args, sizeof(args)));
	}
	void sync()
	{
		check(weir_sync(get()));
	}
};

/** class storage - what a URI opens */
class storage : public handle<struct weir_storage, weir_storage_close>
{
      public:
	storage(const context &of, const char *uri, const struct weir_storage_options *options = nullptr)
	{
		check(weir_storage_open(of.get(), uri, options, out()));
	}
	storage(const context &of, const std::string &uri,
		const struct weir_storage_options *options = nullptr)
	    : storage(of, uri.c_str(), options)
	{
	}
};

/** class cache - between arrays and storages; writes back what is dirty when it goes */
class cache : public handle<struct weir_cache, weir_cache_destroy>
{
      public:
	cache(const context &of, uint64_t bytes)
	{
		check(weir_cache_create(of.get(), WEIR_OPTIONS(cache, .bytes = bytes), out()));
	}
	cache(const context &of, const struct weir_cache_options *options)
	{
		check(weir_cache_create(of.get(), options, out()));
	}
	/* The elements of a storage from byte @first_byte on; @count 0: as many as fit. */
	template <typename T>
	weir::array<T> array(const storage &of, uint64_t first_byte = 0, uint64_t count = 0) const
	{
		struct weir_storage *storages[1] = { of.get() };
		weir::array<T> made;

		check(weir_array_open(get(), storages, 1,
				      WEIR_OPTIONS(array, .element_bytes = sizeof(T),
						   .first_byte = first_byte, .count = count),
				      &made.raw));
		return made;
	}
	template <typename T>
	weir::writer<T> writer(const storage &of, uint64_t first_byte = 0, uint64_t count = 0) const
	{
		struct weir_storage *storages[1] = { of.get() };
		weir::writer<T> made;

		check(weir_writer_open(get(), storages, 1,
				       WEIR_OPTIONS(array, .element_bytes = sizeof(T),
						    .first_byte = first_byte, .count = count),
				       &made.raw));
		return made;
	}
	void flush(bool durable = false)
	{
		check(weir_cache_flush(get(), durable));
	}
};

/** class memory - zeroed device memory for @count of T; goes with its owner */
template <typename T> class memory
{
      public:
	memory(const context &of, uint64_t count) : of_(of.get()), address_(0), count_(count)
	{
		check(weir_alloc(of_, count * sizeof(T), &address_));
	}
	memory(const memory &) = delete;
	memory &operator=(const memory &) = delete;
	~memory()
	{
		(void)weir_free(of_, address_);
	}
	weir_addr address() const
	{
		return address_;
	}
	void copy_to_device(const T *from)
	{
		check(weir_copy_to_device(of_, address_, from, count_ * sizeof(T)));
	}
	void copy_from_device(T *to) const
	{
		check(weir_copy_from_device(of_, to, address_, count_ * sizeof(T)));
	}

      private:
	struct weir_context *of_;
	uint64_t address_;
	uint64_t count_;
};

} // namespace weir

#endif
