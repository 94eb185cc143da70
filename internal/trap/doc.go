// Package trap turns panics of the compiler into errors, so that its bugs do not take an agent down.
package trap
