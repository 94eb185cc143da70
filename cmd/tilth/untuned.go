package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/aot"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/storesync"
	"github.com/tilth-dev/tilth/tuner/bestschedule"
)

const (
	noRecord = "no record"
	// maxUntuned bounds the reasons, the tasks per reason, and the targets per task that are listed.
	maxUntuned = 5
	// maxRecordPages bounds the pages of groups of records to look at.
	maxRecordPages = 20
)

// untunedTasks are tasks without a usable record, for one reason.
type untunedTasks struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	// Tasks holds the names of the first few.
	Tasks []string `json:"tasks"`
}

// untunedList has at most maxUntuned reasons.
type untunedList []untunedTasks

// String formats the reasons with their tasks.
func (l untunedList) String() string {
	parts := make([]string, len(l))
	for k, u := range l {
		names := strings.Join(u.Tasks, ", ")
		if more := u.Count - len(u.Tasks); more > 0 {
			names += fmt.Sprintf(", and %d more", more)
		}
		parts[k] = fmt.Sprintf("%s: %d (%s)", u.Reason, u.Count, names)
	}
	return strings.Join(parts, "; ")
}

// untuned lists the tasks whose choice is not a record, by reason. reasons has those of explainUntuned; other choices
// come from the lock file.
func untuned(tasks []program.Task, choices []aot.Choice, reasons map[string]string) (list untunedList) {
	for k, task := range tasks {
		if task.Untuned || choices[k].Origin == bestschedule.FromRecord {
			continue
		}
		reason, ok := reasons[task.Workload.Digest()]
		if !ok {
			reason = "no record in the lock file"
		}
		at := slices.IndexFunc(list, func(u untunedTasks) bool { return u.Reason == reason })
		switch {
		case at < 0 && len(list) == maxUntuned: // the last one collects the rest
			at = maxUntuned - 1
			list[at].Reason = "other reasons"
		case at < 0:
			at = len(list)
			list = append(list, untunedTasks{Reason: reason})
		}
		if list[at].Count++; list[at].Count <= maxUntuned {
			list[at].Tasks = append(list[at].Tasks, task.Name)
		}
	}
	return list
}

// explainUntuned maps the workload digests of tasks without a usable record to the reasons. refused holds those for
// which records were refused, by workload digest. source may be nil.
func explainUntuned(ctx context.Context, tasks []program.Task, choices []aot.Choice, t *target.Target, source storesync.Catalogue, refused map[string]string) (map[string]string, error) {
	reasons := map[string]string{}
	for k, task := range tasks {
		digest := task.Workload.Digest()
		switch {
		case choices[k].Origin == bestschedule.FromRecord:
		case refused[digest] != "":
			reasons[digest] = "record not used: " + refused[digest]
		default:
			reasons[digest] = noRecord
		}
	}
	if source == nil || len(reasons) == 0 {
		return reasons, nil
	}
	others := map[string][]string{}
	filter := storesync.Filter{Workloads: slices.Sorted(maps.Keys(reasons))}
	err := eachGroup(ctx, source, filter, maxRecordPages, func(g storesync.Summary) {
		fingerprint, _ := records.SplitTarget(g.Target)
		others[g.Workload] = append(others[g.Workload], t.Difference(fingerprint))
	})
	if err != nil {
		return nil, fmt.Errorf("looking for records of other targets: %w", err)
	}
	for digest, differences := range others {
		slices.Sort(differences)
		list := slices.Compact(differences)
		switch {
		case refused[digest] != "":
		case list[0] == "":
			reasons[digest] = "no correct record (all trials failed, or need another level of --numerics)"
		case len(list) > maxUntuned:
			reasons[digest] = fmt.Sprintf("records only for %s, and %d more", strings.Join(list[:maxUntuned], ", for "), len(list)-maxUntuned)
		default:
			reasons[digest] = "records only for " + strings.Join(list, ", for ")
		}
	}
	return reasons, nil
}

// eachGroup calls visit for the groups of a source, up to a number of pages. It fails if the pages are not in order,
// since they might never end.
func eachGroup(ctx context.Context, source storesync.Catalogue, filter storesync.Filter, pages int, visit func(storesync.Summary)) error {
	after := ""
	for range pages {
		page, next, err := source.Groups(ctx, filter, after)
		if err != nil {
			return err
		}
		for _, g := range page {
			visit(g)
		}
		if next == "" {
			break
		}
		if next <= after {
			return fmt.Errorf("%w: the list of workloads is out of order: %q follows %q", records.ErrInvalid, next, after)
		}
		after = next
	}
	return nil
}
