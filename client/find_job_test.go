package client

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

func TestJobTextMatchesItsNumberOnly(t *testing.T) {
	const one = "job-00000001-ana"
	for text, want := range map[string]bool{
		"job-1": true, "job-00000001": true, "job-001-": true, "job-00000001-a": true, one: true,
		"job-0": false, "job-0000000": false, "job-10": false, "job-00000001-e": false, "job-00000001-anas": false,
	} {
		parsed, ok := parseJobText(text)
		if got := parsed.means(one); !ok || got != want {
			t.Errorf("%s means %s: %t, want %t", text, one, got, want)
		}
	}
	for _, text := range []string{"1", "job-", "job-x", "job-1-A", "job-1-a.1", "a job"} {
		if _, ok := parseJobText(text); ok {
			t.Errorf("%q is the beginning of an id", text)
		}
	}
}

func TestListingsStartAfterTheNumber(t *testing.T) {
	for text, want := range map[string]string{
		"job-1": "job-00000002", "job-00000099-ab": "job-00000100", "job-123456789": "job-123456790",
	} {
		if parsed, _ := parseJobText(text); parsed.after() != want {
			t.Errorf("behind %s comes %s, want %s", text, parsed.after(), want)
		}
	}
}

// paged returns ids in pages of two and counts the pages.
func paged(pages *int, ids ...string) func(string) (*tilthv1.ListJobsResponse, error) {
	return func(string) (*tilthv1.ListJobsResponse, error) {
		response := &tilthv1.ListJobsResponse{}
		for _, id := range ids[2**pages : min(2**pages+2, len(ids))] {
			response.Jobs = append(response.Jobs, &tilthv1.Job{Id: id})
		}
		if *pages++; 2**pages < len(ids) {
			response.NextPageToken = "more"
		}
		return response, nil
	}
}

func TestJobsOfANumberAreFoundOnAllPages(t *testing.T) {
	var shards []string
	for i := range 20 { // each has a job of this number
		shards = append(shards, fmt.Sprintf("job-00000002-%c", 'z'-i))
	}
	shards = append(shards, "job-00000001-a", "job-00000001-b", "job-00000001-c")
	for _, c := range []struct {
		text  string
		found []string
		pages int
	}{
		{"job-2-g", []string{"job-00000002-g"}, 10},
		{"job-00000002-h", []string{"job-00000002-h"}, 10},
		{"job-2", shards[:6], 3},
		{"job-2-none", nil, 11},
	} {
		pages := 0
		wanted, _ := parseJobText(c.text)
		found, err := wanted.among(paged(&pages, shards...))
		if err != nil || !slices.Equal(found, c.found) || pages != c.pages {
			t.Errorf("%s: %v on %d pages, %v; want %v on %d", c.text, found, pages, err, c.found, c.pages)
		}
	}
}

func TestEndlessPagesAreNotFollowed(t *testing.T) {
	wanted, _ := parseJobText("job-1")
	_, err := wanted.among(func(string) (*tilthv1.ListJobsResponse, error) {
		return &tilthv1.ListJobsResponse{NextPageToken: "more"}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "give the whole id") {
		t.Errorf("got %v", err)
	}
}

func TestJobIDPrefixesMustBeUnique(t *testing.T) {
	const ana, eva = "job-00000001-ana", "job-00000001-eva"
	many := slices.Repeat([]string{ana}, maxCandidates+1)
	for _, c := range []struct {
		name, text string
		found      []string
		want, fail string
	}{
		{"unknown", "job-9", nil, "job-9", ""},
		{"one", "job-00000001-a", []string{ana}, ana, ""},
		{"two", "job-00000001", []string{eva, ana}, "", "job job-00000001: several ids begin so: give more of one of " + eva + ", " + ana},
		{"many", "job-1", many, "", ", ..."},
	} {
		got, err := only(c.text, c.found)
		if got != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.HasSuffix(err.Error(), c.fail) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestNewestJobIsByTimeOfSubmission(t *testing.T) {
	at := func(id string, second int64) *tilthv1.Job {
		return &tilthv1.Job{Id: id, CreatedAt: timestamppb.New(time.Unix(second, 0))}
	}
	first := newest(nil, []*tilthv1.Job{at("job-00000009-a", 5), at("job-00000008-a", 4)})
	if last := newest(first, []*tilthv1.Job{at("job-00000002-b", 7), at("job-00000001-b", 6)}); last.GetId() != "job-00000002-b" {
		t.Errorf("the newest is %s", last.GetId())
	}
	if newest(nil, nil) != nil {
		t.Error("there is a newest of none")
	}
}
