package runner

import (
	"github.com/tilth-dev/tilth/compiler/target"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Classes are the device classes that a machine offers: one for each number of threads up to that of its processors.
func Classes(machine *target.Target, processors int) []*tilthv1.DeviceClass {
	var classes []*tilthv1.DeviceClass
	for threads := 1; threads <= max(processors, machine.Threads); threads++ {
		t := machine.WithToolchain("")
		t.Threads = threads
		classes = append(classes, &tilthv1.DeviceClass{Name: t.DeviceClass(), Descriptor_: t.Encode()})
	}
	return classes
}
