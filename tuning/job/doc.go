// Package job turns a compiled model into what a tracker is asked to tune.
package job
