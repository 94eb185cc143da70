package target

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU bounds processor numbers, to detect typing errors.
const maxCPU = 1 << 16

var errCPUs = errors.New("want numbers and ranges, such as 0,2-5")

// ParseCPUs parses numbers and ranges, in order. An empty text is an empty list.
func ParseCPUs(text string) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		low, err := strconv.Atoi(from)
		high := low
		if err == nil && isRange {
			high, err = strconv.Atoi(to)
		}
		if err != nil || low < 0 || high < low || high > maxCPU {
			return nil, errCPUs
		}
		for cpu := low; cpu <= high; cpu++ {
			list = append(list, cpu)
		}
		if len(list) > maxCPU {
			return nil, fmt.Errorf("more than %d processors", maxCPU)
		}
	}
	return list, nil
}

// FormatCPUs formats a list of logical processors in ascending order, as Linux does: 0, 1, 2, 3 and 8 become 0-3,8.
func FormatCPUs(list []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(list)))
	var parts []string
	for k := 0; k < len(sorted); {
		last := k
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		part := strconv.Itoa(sorted[k])
		if last > k {
			part += "-" + strconv.Itoa(sorted[last])
		}
		parts, k = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}
