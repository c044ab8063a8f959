//! Tests of the formats: each with values it takes, values it refuses, and what it says.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use super::*;

fn format(text: &str) -> Format {
    text.parse().unwrap()
}

const HOST_KEYS_GOOD: &[&str] = &[
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB root@host one",
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBIXYlsvxinTAINbIl9uxiTeqTx1ZTe4eyVe4zsH7IHEu\
Leyy/oJE5Gk25o9gOAD2XjeM6hQ69axYbgtvGZpCNSQ=",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAIQC7u7u7u7u7u7u7u7u7u7u7u7u7u7u7u7u7u7u7u7u7uw==",
];

const HOST_KEYS_BAD: &[&str] = &[
    "",
    "nonsense",
    "ssh-ed25519",
    "ssh-ed25519 AAAA",
    "ssh-ed25519 !!!!",
    // Its base64 names another algorithm.
    "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
    // One byte too few, and three too many.
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAAAA",
    "ssh-dss AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
    "10.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB\n* ssh-rsa AAAA",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB a\r",
    "ssh-ed25519  AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
    "@cert-authority ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
];

fn says(name: &str, value: &str) -> String {
    format(name).validate(value).unwrap_err()
}

#[test]
fn durations_are_counted() {
    for (text, seconds) in
        [("90s", 90.0), ("10m", 600.0), ("1m30s", 90.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("250ms", 0.25)]
    {
        assert_eq!(parse_duration(text), Some(Duration::from_secs_f64(seconds)), "{text}");
    }
    for text in ["", "5", "10", "m", "x", "5d", "1..s", "99999999999999999999h"] {
        assert_eq!(parse_duration(text), None, "{text}");
    }
}

#[test]
fn each_format_takes_and_refuses() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("empty", &[""], &["x", " "]),
        ("dns-label", &["a", "kubernetes", "a-1", "1a", &"a".repeat(63)], &["", "-a", "a-", "A", "a.b", "a_b", "ä"]),
        ("dns-name", &["cluster.local", "a", "1.a"], &["", ".", "a.", ".a", "a..b", "A.b", "a_b.c"]),
        ("user-name", &["root", "_apt", "a-1"], &["", "1a", "a b", "Root", "a;b", "-a", "a$"]),
        (
            "login-name",
            &["root", "first.last", "Admin_2", "9x", &"a".repeat(64)],
            &["", "-oProxyCommand=id", "a b", "a;b", "a@b", ".a", "$(id)", "a\nb", "ä", &"a".repeat(65)],
        ),
        ("host-key", HOST_KEYS_GOOD, HOST_KEYS_BAD),
        (
            "id",
            &["i-0abc", "projects/p/zones/z/disks/d", "/subscriptions/s/g_(x)", "key-0123"],
            &["", "-i", "=x", "a b", "a\nb", "$(id)", "a;b", "a'b", "ä", &"a".repeat(513)],
        ),
        (
            "host-path",
            &["/a", "/srv/a b/ä.conf", "/a:b@c"],
            &[
                "",
                "a",
                "/",
                "/a/",
                "/a//b",
                "/a/../b",
                "/./a",
                "/a\nb",
                "/$(id)",
                "/a'b",
                "/a\"b",
                "/a`b",
                "/a;b",
                "/a\u{202e}b",
                "/%h",
            ],
        ),
        (
            "device",
            &[
                "/dev/sdb",
                "/dev/disk/by-id/nvme-X_1",
                "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
                r"/dev/disk/by-label/a\x20b",
            ],
            &[
                "",
                "sdb",
                "/dev/",
                "/dev/../etc/passwd",
                "/dev//sdb",
                "/dev/a b",
                "/devices/x",
                "/dev/ä",
                "/dev/$(id)",
                r"/dev/a\nb",
                r"/dev/a\x/b",
            ],
        ),
        ("sha256", &[&"0a".repeat(32)], &["", "0A", &"0A".repeat(32), &"0g".repeat(32), &"0a".repeat(33)]),
        ("ip", &["10.0.0.1", "::1", "2001:db8::2"], &["", "a", "10.0.0", "[::1]", "fe80::1%eth0"]),
        ("content", &["", "a\nb", "\u{1b}[2J"], &[]),
        ("text", &["", "a b", "ä$(id)"], &["a\nb", "a\tb", "\u{1b}", "\u{7f}", "\u{9b}", "\u{202e}", "\0"]),
        ("ipv4", &["10.0.0.1", "255.255.255.255"], &["", "10.0.0", "10.0.0.256", "010.0.0.1", "::1", " 10.0.0.1"]),
        ("cidr", &["10.0.0.0/8", "0.0.0.0/0"], &["", "10.0.0.0", "10.0.0.1/8", "10.0.0.0/33", "fd00::/8"]),
        ("cidr(8..24)", &["10.0.0.0/8", "10.0.0.0/24"], &["0.0.0.0/0", "10.0.0.0/25"]),
        ("cidr6", &["fd00::/8", "::/0", "2001:db8::/32"], &["", "fd00::", "fd00::1/8", "::/129", "10.0.0.0/8", ":/0"]),
        ("cidr6(48..64)", &["fd00::/48", "fd00::/64"], &["fd00::/47", "fd00::/65"]),
        ("list(cidr or cidr6)", &["", "10.0.0.0/8,fd00::/8"], &["10.0.0.0/8,fd00::1/8", "fd00::"]),
        ("host", &["10.0.0.1", "node-1.example"], &["", "10.0.0", "a b", "a/b"]),
        ("host-list", &["", "a", "a,10.0.0.1", "a, b"], &["a,", "a,,b", "a;b"]),
        ("semver", &["1.36.3", "1.0.0-rc.1"], &["", "1.36", "v1.36.3", "latest", "01.2.3"]),
        ("path", &["/srv", "a/b", ".", "with blank"], &["", "~/x", "a\nb", "https://x"]),
        (
            "url",
            &["http://a", "https://a.b:8080/c?d", "https://10.0.0.1/"],
            &["", "ftp://a", "http://", "http://u:p@a", "http://a b", "http://a:0", "http://a:x"],
        ),
        ("duration", &["90s", "1h30m", "500ms", "1.5h", "0s"], &["", "90", "s", "1x", "1h 30m", "-1s", ".s", "1.s"]),
        ("quantity", &["1", "500m", "2Gi", "1.5", "0"], &["", "Gi", "1GB", "-1", "1 Gi", "1.", "1.2.3"]),
        ("enum(a, b c)", &["a", "b c"], &["", "c", "A", "a "]),
        ("list(cidr)", &["", "10.0.0.0/8,11.0.0.0/8"], &["10.0.0.0/8,x"]),
        (
            "map(dns-label, quantity)",
            &["", "cpu=1", "cpu=1,memory=2Gi"],
            &["cpu", "cpu=x", "CPU=1", "cpu=1,cpu=2", "=1"],
        ),
        ("empty or url or path", &["", "/srv", "https://a"], &["https://u@a", "~/x"]),
        ("list(enum(a, b))", &["a,b"], &["a,c"]),
    ];
    for (name, good, bad) in cases {
        for value in *good {
            assert_eq!(format(name).validate(value), Ok(()), "{name} must take {value:?}");
        }
        for value in *bad {
            assert!(format(name).validate(value).is_err(), "{name} must refuse {value:?}");
        }
    }
}

#[test]
fn messages_say_what_would_do() {
    assert_eq!(says("dns-label", "Staging"), "`Staging` has capital letters; `staging` would do");
    assert_eq!(says("dns-label", ""), "it is empty; expected lower-case letters, digits and hyphens, at most 63");
    assert_eq!(says("enum(local, baremetal)", "locl"), "`locl` is none of local or baremetal; did you mean `local`?");
    assert_eq!(says("enum(local, baremetal)", "zzz"), "`zzz` is none of local or baremetal");
    assert_eq!(says("semver", "v1.36.3"), "`v1.36.3` begins with a v; write 1.36.3");
    assert_eq!(says("cidr(8..24)", "10.0.0.0/28"), "10.0.0.0/28 is too small; the prefix length must be at most /24");
    assert_eq!(says("cidr6(48..64)", "fd00::/8"), "fd00::/8 is too large; the prefix length must be at least /48");
    assert_eq!(
        says("cidr or cidr6", "fd00::1/8"),
        "fd00::1/8 is an address inside the network fd00::/8; write the network itself"
    );
    assert_eq!(
        says("cidr or cidr6", "10.0.0.1/8"),
        "10.0.0.1/8 is an address inside the network 10.0.0.0/8; write the network itself"
    );
    assert_eq!(says("path", "~/m"), "`~` is not expanded; write the whole path instead of `~/m`");
    assert_eq!(
        says("url", "http://u:p@h"),
        "a URL with a user name or password would be stored in plain text; leave them out"
    );
    assert_eq!(says("empty or url or path", "https://h:99999"), "`99999` is not a port");
    assert_eq!(
        says("list(ipv4)", "10.0.0.1,x"),
        "element 2: `x` is not valid; expected an IPv4 address such as 10.0.0.1"
    );
    assert_eq!(says("map(dns-label, quantity)", "a=1,a=2"), "key `a` occurs twice");
}

#[test]
fn the_language_of_formats_is_checked() {
    let wrong = |text: &str| text.parse::<Format>().unwrap_err();
    assert_eq!(wrong("cdir"), "`cdir` is no format; did you mean `cidr`?");
    assert_eq!(wrong("enum(a"), "`enum(a` lacks its closing parenthesis");
    assert_eq!(wrong("enum"), "`enum` has the wrong number of arguments");
    assert_eq!(wrong("map(path)"), "`map(path)` has the wrong number of arguments");
    assert_eq!(wrong("ipv4(4)"), "`ipv4` takes no arguments, or is no format");
    assert_eq!(wrong("cidr6(48..129)"), "`48..129` are no prefix lengths; write cidr(8..24)");
    assert_eq!(wrong("cidr(24..8)"), "`24..8` are no prefix lengths; write cidr(8..24)");
    assert_eq!(format("enum(1.36.3, 1.35.4)").words().unwrap(), ["1.36.3", "1.35.4"]);
    assert_eq!(
        format("list(enum(a, b) or empty)"),
        Format::List(Box::new(Format::Any(vec![Format::Enum(vec!["a".to_owned(), "b".to_owned()]), Format::Empty,])))
    );
}

#[test]
fn every_sample_is_valid() {
    let fields = vec![
        Field { name: "name".into(), required: true, format: Format::DnsLabel },
        Field { name: "size".into(), required: false, format: Format::Int(1, 9) },
    ];
    let list = Format::List(Box::new(Format::Cidr(20, 28)));
    let map = Format::Map(Box::new(Format::LabelKey), Box::new(Format::Bool));
    for format in [
        Format::DnsLabel,
        Format::DnsName,
        Format::UserName,
        Format::Ipv4,
        Format::Cidr(0, 32),
        Format::Cidr(8, 12),
        Format::Cidr6(0, 128),
        Format::Cidr6(48, 64),
        Format::Host,
        Format::Semver,
        Format::Path,
        Format::Url,
        Format::Duration,
        Format::Quantity,
        Format::Text,
        Format::Word,
        Format::LabelKey,
        Format::LabelValue,
        Format::Taint,
        Format::Int(2, 7),
        Format::Bool,
        Format::Enum(vec!["a".into(), "b".into()]),
        list,
        map,
        Format::Any(vec![Format::Empty, Format::Url]),
        Format::Records(fields),
        Format::File,
        Format::LoginName,
        Format::HostKey,
        Format::Id,
        Format::HostPath,
        Format::Device,
        Format::Sha256,
        Format::Ip,
        Format::Content,
    ] {
        let samples = format.samples();
        assert!(samples.len() > 1, "{format:?}");
        for sample in samples {
            assert_eq!(format.validate(&sample), Ok(()), "{format:?} {sample}");
        }
    }
}
