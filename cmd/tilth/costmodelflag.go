package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/costmodel"
	"github.com/tilth-dev/tilth/tuner/knowledge"
)

// costModelFlag names a cost model to use instead of training one on records.
type costModelFlag struct{ file string }

func (f *costModelFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "cost-model", "", "cost model `file` to use instead of training one, in LightGBM text format")
}

// models returns the source of cost models: the file, or a cache folder.
func (f *costModelFlag) models(cache string) (knowledge.Models, error) {
	m := knowledge.Models{Prior: costmodel.PriorFor, Dir: filepath.Join(cache, "models")}
	if f.file == "" {
		return m, nil
	}
	var err error
	m.Given, err = costmodel.ReadFile(f.file, registry.FeatureSets()...)
	return m, err
}
