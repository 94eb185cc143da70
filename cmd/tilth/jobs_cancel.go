package main

import (
	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/client"
)

func newJobsCancel(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "cancel JOB", Short: "End a job; its measurements are kept",
		Example: "  tilth jobs cancel job-00000001 --reason 'wrong model'",
	}
	return a.control(c, "cancelled by "+owner(), (*client.Client).Cancel)
}
