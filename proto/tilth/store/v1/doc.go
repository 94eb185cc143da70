// Package storev1 defines the stored rows that are no messages of the wire, generated from the definitions beside it.
package storev1
