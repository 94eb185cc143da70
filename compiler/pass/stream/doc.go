// Package stream is the pass that stores vectors of streamed outputs past the caches.
package stream
