// Package job turns compiled models into what a tracker is asked to tune: tasks with weights, and a specification. It
// knows the compiler and the wire, and no services. Begin with Spec.
package job
