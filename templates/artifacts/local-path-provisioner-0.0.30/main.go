// Command local-path-helper makes and removes the directory of one volume. local-path-provisioner starts it in a pod on the
// volume's node, with the directory of all volumes mounted; upstream runs a shell script in its place.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	path := flag.String("p", "", "the volume's directory")
	flag.String("s", "", "the volume's size in bytes, which no directory enforces")
	mode := flag.String("m", "", "the volume's mode: Filesystem")
	action := flag.String("a", "", "create or delete")
	flag.Parse()
	if err := run(*path, *mode, *action); err != nil {
		fmt.Fprintln(os.Stderr, "local-path-helper:", err)
		os.Exit(1)
	}
}

// run does it by the parent directory, out of which no symbolic link in it leads: pods write what they want into volumes.
func run(path, mode, action string) error {
	if mode != "Filesystem" {
		return fmt.Errorf("%s: a volume of mode %q is no directory", path, mode)
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return fmt.Errorf("%q is no directory of a volume", path)
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	name := filepath.Base(path)
	switch action {
	case "create":
		return create(parent, name)
	case "delete":
		return parent.RemoveAll(name)
	default:
		return fmt.Errorf("%q is neither create nor delete", action)
	}
}

// create makes the directory, or takes one that an earlier try made. Pods of any user write to it; users of the node do not
// come to it, for its parent is root's alone.
func create(parent *os.Root, name string) error {
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	found, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	if !found.IsDir() {
		return fmt.Errorf("%s is no directory", name)
	}
	return parent.Chmod(name, 0o777)
}
