package web

import (
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// signInPage is the sign-in form.
type signInPage struct{ Next, Message, Issuer string }

// localPath returns next if it is a path of this site, else "/": it prevents open redirects.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

func (s *Site) signInForm(w http.ResponseWriter, r *http.Request) error {
	if !s.Door.SignsIn() {
		return status.Error(codes.NotFound, "this tracker takes no tokens: there is nothing to sign in to")
	}
	return s.render(w, r, http.StatusOK, "signin", layout{Title: "Sign in", Page: signInPage{
		Next: localPath(r.URL.Query().Get("next")), Issuer: s.Door.Issuer(),
	}})
}

func (s *Site) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := s.form(w, r); err != nil {
		return err
	}
	next := localPath(r.PostForm.Get("next"))
	if err := s.Door.SignIn(w, r, r.PostForm.Get("token")); err != nil {
		code := httpCodes[status.Code(err)]
		return s.render(w, r, max(code, http.StatusBadRequest), "signin", layout{
			Title: "Sign in", Page: signInPage{Next: next, Message: status.Convert(err).Message(), Issuer: s.Door.Issuer()},
		})
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

func (s *Site) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.form(w, r); err != nil {
		return err
	}
	s.Door.SignOut(w, r)
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
	return nil
}
