// Package lrudir bounds a cache folder: the least recently used files are deleted when it outgrows its limit.
package lrudir
