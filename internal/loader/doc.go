// Package loader finds the folders that were added to the configuration of this machine's dynamic loader.
package loader
