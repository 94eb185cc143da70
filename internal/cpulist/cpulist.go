package cpulist

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// most bounds processor numbers, to detect typing errors.
const most = 1 << 16

var errForm = errors.New("want numbers and ranges, such as 0,2-5")

// Parse parses numbers and ranges, in order. An empty text is an empty list.
func Parse(text string) (list []int, err error) {
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
		if err != nil || low < 0 || high < low || high > most {
			return nil, errForm
		}
		for cpu := low; cpu <= high; cpu++ {
			list = append(list, cpu)
		}
		if len(list) > most {
			return nil, fmt.Errorf("more than %d processors", most)
		}
	}
	return list, nil
}

// Format formats a list in ascending order: 0, 1, 2, 3 and 8 become 0-3,8.
func Format(list []int) string {
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
