// Package lrudir bounds a cache folder by deleting the least recently used files.
package lrudir
