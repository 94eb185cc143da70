// Package runner measures candidates on a device: it downloads what a builder compiled, verifies and times each
// candidate in a harness process, and reports the measurements. It also watches the device, and runs packages. It
// knows no sketches and no store. Begin with Handler.
package runner
