// Package atomicfile writes files atomically.
package atomicfile
