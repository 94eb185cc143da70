package web

import (
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tasksOfPage is the number of tasks per page. A job may have thousands.
const tasksOfPage = 200

// part is the range of tasks on a page.
type part struct {
	// First and Last are task numbers, from 1; All is the total.
	First, Last, All int
	// Previous and Next link to adjacent pages; empty at the ends.
	Previous, Next string
}

// partOf returns the requested range, which starts at the first task by default.
func partOf(r *http.Request, all int) (part, error) {
	p := part{First: 1, All: all}
	if text := r.URL.Query().Get("from"); text != "" {
		var err error
		if p.First, err = strconv.Atoi(text); err != nil || p.First < 1 || p.First > max(all, 1) {
			return part{}, status.Errorf(codes.InvalidArgument, "from %q is not the number of a task, from 1 to %d", text, all)
		}
	}
	p.Last = min(all, p.First-1+tasksOfPage)
	at := func(first int) string {
		q := r.URL.Query()
		q.Set("from", strconv.Itoa(first))
		return "?" + q.Encode()
	}
	if p.First > 1 {
		p.Previous = at(max(1, p.First-tasksOfPage))
	}
	if p.Last < all {
		p.Next = at(p.Last + 1)
	}
	return p, nil
}

// search lists pages from a token on until about limit elements match, most were visited, or a page is empty. list
// gets the number of elements that are still wanted. next is the token of the following page, "" after the last.
func search[T any](limit, most int, token string, list func(want int, token string) ([]T, string, error), matches func(T) bool) (found []T, next string, err error) {
	for visited := 0; visited < most && len(found) < limit; {
		var page []T
		if page, token, err = list(limit-len(found), token); err != nil {
			return nil, "", err
		}
		for _, one := range page {
			if matches(one) {
				found = append(found, one)
			}
		}
		if visited += len(page); token == "" || len(page) == 0 {
			break
		}
	}
	return found, token, nil
}

// of returns the elements of all that belong to the part.
func of[T any](p part, all []T) []T { return all[p.First-1 : p.Last] }
