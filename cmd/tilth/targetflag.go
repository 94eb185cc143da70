package main

import "github.com/spf13/cobra"

// targetFlag adds --target, which says for what a command works, with native as the default.
func targetFlag(c *cobra.Command, name *string, use string) {
	c.Flags().StringVar(name, "target", "native", use+": native, a preset such as x86-64-v3 or sm_90a, cuda or cuda:CARD (a GPU of NVIDIA's), "+
		"opencl (a device with an OpenCL driver), gpu-sim (a simulated GPU), reference (plain C), or a JSON `file`")
}
