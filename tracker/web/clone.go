package web

import (
	"crypto/rand"
	"net/http"
	"net/url"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// clone submits a job again. It has handlers of its own, since it redirects to the new job.
var clone = action{
	Name: "clone", Method: tilthv1.JobService_SubmitJob_FullMethodName,
	Effect: "A new job with the same tasks, target, search, seed and budget is queued under your name. It reuses earlier measurements.",
}

// confirmClone asks for confirmation. The form contains a request id, so that sending it twice creates one job.
func (s *Site) confirmClone(w http.ResponseWriter, r *http.Request) error {
	j, err := s.getJob(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	p := confirmPage{action: clone, Name: j.GetSpec().GetName() + " (" + j.GetId() + ")", Back: "/jobs/" + j.GetId(), Request: rand.Text()}
	return s.render(w, r, http.StatusOK, "confirm", layout{Title: "clone the job", Section: "jobs", Page: p})
}

// cloneJob submits a job again and redirects to the new job.
func (s *Site) cloneJob(w http.ResponseWriter, r *http.Request) error {
	if err := s.form(w, r); err != nil {
		return err
	}
	j, err := s.getJob(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	made, err := s.jobs.SubmitJob(r.Context(), &tilthv1.SubmitJobRequest{RequestId: r.PostForm.Get("request"), Spec: j.GetSpec()})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/jobs/"+url.PathEscape(made.GetJob().GetId()), http.StatusSeeOther)
	return nil
}
