// Package job turns compiled models into tuning requests: tasks with weights, and a job specification. It
// depends on the compiler and the wire, but not on services. Start with Spec.
package job
