// Package atomicfile writes files that appear whole or not at all.
package atomicfile
