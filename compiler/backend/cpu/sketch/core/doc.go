// Package core is what sketches for processors share of a core: what its registers hold, and stores past its caches.
package core
