package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Credentials guard /system/* and /metrics where others can reach them.
type Credentials struct {
	User, Password string
}

// LoadCredentials reads the credentials kept in dir, in files named as OpenFaaS names them, and makes them the first time.
func LoadCredentials(dir string) (Credentials, error) {
	var c Credentials
	var err error
	if c.User, err = secret(dir, "basic-auth-user", func() string { return "admin" }); err != nil {
		return c, err
	}
	c.Password, err = secret(dir, "basic-auth-password", rand.Text)
	return c, err
}

// secret reads a file of one line. If the file is missing, generate fills it.
func secret(dir, name string, generate func() string) (string, error) {
	path := filepath.Join(dir, name)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		raw = []byte(generate() + "\n")
		err = writeSecret(path, raw)
	}
	if err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	value := strings.TrimSpace(string(raw))
	if value == "" {
		return "", fmt.Errorf("credentials: %s is empty: remove it, and a new one is made", path)
	}
	return value, nil
}

// writeSecret makes the file whole or not at all.
func writeSecret(path string, content []byte) error {
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// require lets requests with these credentials through.
func (c Credentials) require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok || !c.match(user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="lambdanic"`)
			http.Error(w, "user and password wanted: they are in the data directory, in basic-auth-user and basic-auth-password",
				http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// match takes the same time whether user or password is wrong. Hashing first hides the lengths.
func (c Credentials) match(user, password string) bool {
	if c.User == "" || c.Password == "" {
		return false
	}
	same := func(a, b string) int {
		ha, hb := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
		return subtle.ConstantTimeCompare(ha[:], hb[:])
	}
	return same(user, c.User)&same(password, c.Password) == 1
}
