// Package runner measures candidates on a device: it downloads builds, verifies and times each candidate in a
// harness process, and reports the measurements. It also monitors the device and runs packages. It depends on
// neither sketches nor stores. Start with Handler.
package runner
