// Package trap turns panics of the compiler into errors, so that bugs do not crash an agent.
package trap
