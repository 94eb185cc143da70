package main

import "github.com/spf13/cobra"

// targetFlag adds --target, with native as the default.
func targetFlag(c *cobra.Command, name *string, use string) {
	c.Flags().StringVar(name, "target", "native", use+": native, a preset (x86-64-v3, sm_90a), "+
		"cuda or cuda:CARD, opencl, gpu-sim, reference or a JSON `file`")
}
