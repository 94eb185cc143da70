// Package loader tells where this machine's dynamic loader finds shared libraries, besides its own folders.
package loader
