package graph

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseShape reads what users write to fix an input's shape, such as "data=1x3x224x224"; "x=" is a scalar.
func ParseShape(text string) (name string, shape []int64, err error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", nil, fmt.Errorf("shape %q is not of the form name=1x3x224x224", text)
	}
	shape = []int64{}
	if list == "" {
		return name, shape, nil
	}
	for _, part := range strings.Split(list, "x") {
		e, err := strconv.ParseInt(part, 10, 64)
		if err != nil || e <= 0 {
			return "", nil, fmt.Errorf("shape %q has the extent %q, which is not a positive integer", text, part)
		}
		shape = append(shape, e)
	}
	return name, shape, nil
}
