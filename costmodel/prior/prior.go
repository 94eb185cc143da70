package prior

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/costmodel"
)

// read caches the parsed models by their texts, because parsing takes longer than any prediction.
var (
	mu   sync.Mutex // guards read
	read = map[string]*costmodel.Model{}
)

// For returns the model for a target, or nil if its backend has none.
func For(t *target.Target) (*costmodel.Model, error) {
	b, err := registry.Of(t)
	if err != nil {
		return nil, fmt.Errorf("cost model: %w", err)
	}
	text := b.Features().Prior(t)
	if text == "" {
		return nil, nil
	}
	mu.Lock()
	defer mu.Unlock()
	if read[text] == nil {
		m, err := costmodel.Read(strings.NewReader(text), b.Features().Set())
		if err != nil {
			return nil, fmt.Errorf("the model of backend %s: %w", b.Name(), err)
		}
		read[text] = m
	}
	return read[text], nil
}
