// Package lrudir bounds a folder of files that can be made again: the least recently used go when it outgrows its cap.
package lrudir
