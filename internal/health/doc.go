// Package health serves what a process says of itself over HTTP: whether it lives, and whether it can do its work.
package health
