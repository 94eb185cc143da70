package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds on what a page reads from packages, which clients upload.
const (
	// maxManifestBytes bounds a manifest. Models with a thousand kernels have a few MiB.
	maxManifestBytes = 4 << 20
	// maxPassed bounds the members before the manifest.
	maxPassed = 64
	// maxKernels and maxMembers bound the lists in a manifest; each item is a row of the page.
	maxKernels, maxMembers = 16384, 1024
	// maxComparisons bounds concurrent requests that read packages.
	maxComparisons = 2
)

// manifestName is the member of a package that describes the others.
const manifestName = "manifest.json"

// manifest is the part of manifest.json (docs/formats.md) that a page shows.
type manifest struct {
	Model  string `json:"model"`
	Target struct {
		CPU       json.RawMessage `json:"cpu"`
		Toolchain json.RawMessage `json:"toolchain"`
	} `json:"target"`
	Inputs       count             `json:"inputs"`
	Outputs      count             `json:"outputs"`
	Tasks        list[packageTask] `json:"tasks"`
	Calls        count             `json:"calls"`
	ArenaBytes   int64             `json:"arena_bytes"`
	WeightsBytes int64             `json:"weights_bytes"`
	Weights      *struct {
		Type      string `json:"type"`
		Quantised int    `json:"quantised"`
		All       int    `json:"all"`
	} `json:"weights"`
	Members list[packageMember] `json:"members"`
}

// packageTask is a kernel of a package.
type packageTask struct {
	Name           string  `json:"name"`
	Workload       string  `json:"workload"`
	Trace          string  `json:"trace"`
	Origin         string  `json:"origin"`
	LatencySeconds float64 `json:"latency_s"`
	// FormerLatencySeconds is the field's name in older versions.
	FormerLatencySeconds float64 `json:"latency_seconds"`
}

// packageMember is a file of a package.
type packageMember struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
}

// readManifest reads a manifest of at most maxManifestBytes. Errors are for display.
func readManifest(r io.Reader) (*manifest, error) {
	var m manifest
	err := json.NewDecoder(r).Decode(&m)
	if tooMany := (*tooManyError)(nil); errors.As(err, &tooMany) {
		return nil, fmt.Errorf("its %s has %w", manifestName, tooMany)
	}
	if err != nil {
		return nil, fmt.Errorf("its %s is not valid", manifestName)
	}
	for k := range m.Tasks {
		m.Tasks[k].LatencySeconds = cmp.Or(m.Tasks[k].LatencySeconds, m.Tasks[k].FormerLatencySeconds)
	}
	return &m, nil
}

// listed is an item of a bounded list.
type listed interface {
	limit() (what string, most int)
}

func (packageTask) limit() (string, int)   { return "tasks", maxKernels }
func (packageMember) limit() (string, int) { return "members", maxMembers }

// list is a bounded list.
type list[T listed] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	return eachItem(data, func(item T) error {
		if what, most := item.limit(); len(*l) == most {
			return &tooManyError{what, most}
		}
		*l = append(*l, item)
		return nil
	})
}

// tooManyError reports a list with more items than a page shows.
type tooManyError struct {
	what string
	max  int
}

// Error implements error.
func (e *tooManyError) Error() string {
	return fmt.Sprintf("more than %d %s, the most that are shown", e.max, e.what)
}

// count is the length of a list whose items are discarded.
type count int

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(data []byte) error {
	*c = 0
	return eachItem(data, func(ignored) error {
		*c++
		return nil
	})
}

// ignored is a discarded value.
type ignored struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// eachItem calls visit for each item of a JSON list until it returns an error. null is an empty list.
func eachItem[T any](data []byte, visit func(item T) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	switch begin, err := d.Token(); {
	case err != nil:
		return err
	case begin == nil:
		return nil
	case begin != json.Delim('['):
		return errors.New("is not a list")
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		if err := visit(item); err != nil {
			return err
		}
	}
	return nil
}
