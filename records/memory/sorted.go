package memory

import (
	"cmp"
	"iter"
	"slices"
)

// maxInChunk bounds the elements that an insertion moves.
const maxInChunk = 512

// sorted is an ordered map, stored as a list of non-empty chunks. The zero value is empty.
type sorted[K cmp.Ordered, V any] struct {
	chunks [][]entry[K, V]
	count  int
}

type entry[K cmp.Ordered, V any] struct {
	key   K
	value V
}

// find returns the position of a key, or where to insert it.
func (s *sorted[K, V]) find(key K) (chunk, at int, there bool) {
	chunk, _ = slices.BinarySearchFunc(s.chunks, key, func(c []entry[K, V], key K) int { return cmp.Compare(c[len(c)-1].key, key) })
	if chunk == len(s.chunks) {
		return max(chunk-1, 0), s.lastLen(), false
	}
	at, there = slices.BinarySearchFunc(s.chunks[chunk], key, func(e entry[K, V], key K) int { return cmp.Compare(e.key, key) })
	return chunk, at, there
}

func (s *sorted[K, V]) lastLen() int {
	if len(s.chunks) == 0 {
		return 0
	}
	return len(s.chunks[len(s.chunks)-1])
}

// get returns the value of a key; ok is false without one.
func (s *sorted[K, V]) get(key K) (value V, ok bool) {
	if chunk, at, there := s.find(key); there {
		return s.chunks[chunk][at].value, true
	}
	return value, false
}

// put sets the value of a key and returns the previous one.
func (s *sorted[K, V]) put(key K, value V) (before V, replaced bool) {
	chunk, at, there := s.find(key)
	if there {
		before, s.chunks[chunk][at].value = s.chunks[chunk][at].value, value
		return before, true
	}
	s.count++
	if len(s.chunks) == 0 {
		s.chunks = append(s.chunks, nil)
	}
	s.chunks[chunk] = slices.Insert(s.chunks[chunk], at, entry[K, V]{key, value})
	if c := s.chunks[chunk]; len(c) > maxInChunk {
		// Keys mostly grow: a chunk that overflows at its end stays full.
		cut := len(c) / 2
		if at == len(c)-1 {
			cut = at
		}
		s.chunks = slices.Insert(s.chunks, chunk+1, slices.Clone(c[cut:]))
		clear(c[cut:])
		s.chunks[chunk] = c[:cut]
	}
	return before, false
}

// remove removes a key and returns its value.
func (s *sorted[K, V]) remove(key K) (value V, there bool) {
	chunk, at, there := s.find(key)
	if !there {
		return value, false
	}
	s.count--
	value = s.chunks[chunk][at].value
	if s.chunks[chunk] = slices.Delete(s.chunks[chunk], at, at+1); len(s.chunks[chunk]) == 0 {
		s.chunks = slices.Delete(s.chunks, chunk, chunk+1)
	}
	return value, true
}

// from iterates over the keys from key on, in order.
func (s *sorted[K, V]) from(key K) iter.Seq2[K, V] {
	chunk, at, _ := s.find(key)
	return s.forwardFrom(chunk, at)
}

// all iterates over all keys, in order.
func (s *sorted[K, V]) all() iter.Seq2[K, V] { return s.forwardFrom(0, 0) }

func (s *sorted[K, V]) forwardFrom(chunk, at int) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for chunk, at := chunk, at; chunk < len(s.chunks); chunk, at = chunk+1, 0 {
			for _, e := range s.chunks[chunk][at:] {
				if !yield(e.key, e.value) {
					return
				}
			}
		}
	}
}

// before iterates over the keys less than key, in descending order.
func (s *sorted[K, V]) before(key K) iter.Seq2[K, V] {
	chunk, at, _ := s.find(key)
	return s.backwardFrom(chunk, at)
}

// backward iterates over all keys, in descending order.
func (s *sorted[K, V]) backward() iter.Seq2[K, V] {
	return s.backwardFrom(len(s.chunks)-1, s.lastLen())
}

func (s *sorted[K, V]) backwardFrom(chunk, at int) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for chunk, at := chunk, at; chunk >= 0 && chunk < len(s.chunks); chunk-- {
			for _, e := range slices.Backward(s.chunks[chunk][:at]) {
				if !yield(e.key, e.value) {
					return
				}
			}
			if chunk > 0 {
				at = len(s.chunks[chunk-1])
			}
		}
	}
}

// last returns the greatest key; ok is false if s is empty.
func (s *sorted[K, V]) last() (key K, ok bool) {
	for key := range s.backward() {
		return key, true
	}
	return key, false
}
