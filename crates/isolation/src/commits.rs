//! Commits made by the host (ISO-9, OBS-13): the person's identity, a given
//! message, nobody's hooks; and bringing them into the person's repository.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use crate::bytes;
use crate::error::{Result, io_error};
use crate::source::Source;
use crate::trees::Trees;

/// Used where the person has not told git a name.
const OWN_NAME: &str = "crew";
const OWN_ADDRESS: &str = "crew@localhost";

/// Who a commit says it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) address: String,
}

/// The words of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// With the time as `git` takes it; `None` is the committer, now.
    pub(crate) author: Option<(Person, String)>,
    pub(crate) message: Vec<u8>,
}

/// The identity that git would commit with, else our own.
pub(crate) fn person(trees: &Trees<'_>, source: &Source) -> Result<Person> {
    let call = source.call(&trees.git, "read the identity").setting("user.useConfigOnly=true");
    let told = call.args(&["var", "GIT_COMMITTER_IDENT"]).end()?;
    let line = told.line();
    let parts =
        line.split_once(" <").and_then(|(name, rest)| Some((name, rest.split_once('>')?.0)));
    Ok(match parts {
        Some((name, address)) if told.status.success() && !name.is_empty() => {
            Person { name: name.to_owned(), address: address.to_owned() }
        }
        _ => Person { name: OWN_NAME.to_owned(), address: OWN_ADDRESS.to_owned() },
    })
}

/// The author, the time and the message of a commit.
pub(crate) fn words(trees: &Trees<'_>, commit: &str) -> Result<Words> {
    let format = "--format=%an%x00%ae%x00%ad%x00%B";
    let args = ["show", "-s", "--encoding=UTF-8", "--date=raw", "--no-show-signature", format];
    let shown = trees.call("read a commit").args(&args).arg(commit).run()?;
    let mut parts = shown.out.splitn(4, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (name, address, date) = (text(), text(), text());
    let message = parts.next().unwrap_or_default();
    let author = (!name.is_empty()).then_some((Person { name, address }, date));
    Ok(Words { author, message: bytes::line(message).to_vec() })
}

/// Makes a commit; gives its name.
pub(crate) fn make(
    trees: &Trees<'_>,
    person: &Person,
    tree: &str,
    parent: &str,
    words: &Words,
) -> Result<String> {
    let mut call = trees.call("commit").args(&["commit-tree", tree, "-p", parent]);
    let (author, date) = match &words.author {
        Some((author, date)) => (author, Some(date)),
        None => (person, None),
    };
    call = call.env("GIT_AUTHOR_NAME", &author.name).env("GIT_AUTHOR_EMAIL", &author.address);
    call = call.env("GIT_COMMITTER_NAME", &person.name);
    call = call.env("GIT_COMMITTER_EMAIL", &person.address);
    if let Some(date) = date {
        call = call.env("GIT_AUTHOR_DATE", date);
    }
    Ok(call.input(words.message.clone()).run()?.line())
}

/// Brings the commits from `base` (left out) to `tip` into the person's object
/// store. No ref changes.
pub(crate) fn carry(trees: &Trees<'_>, source: &Source, base: &str, tip: &str) -> Result<()> {
    carry_all(trees, source, &["--revs"], format!("{tip}\n^{base}\n"))
}

/// Brings single objects into the person's object store.
pub(crate) fn carry_objects(trees: &Trees<'_>, source: &Source, objects: &[String]) -> Result<()> {
    match objects {
        [] => Ok(()),
        objects => carry_all(trees, source, &[], objects.join("\n") + "\n"),
    }
}

/// Strictly: what git itself would call broken, such as a tree with a name of
/// git in it, does not get in.
fn carry_all(trees: &Trees<'_>, source: &Source, how: &[&str], which: String) -> Result<()> {
    let path = trees.fresh("pack")?;
    let mut options = File::options();
    let made = options.read(true).write(true).create_new(true).open(&path);
    let mut pack = made.map_err(io_error("write", &path))?;
    let copy = pack.try_clone().map_err(io_error("write", &path))?;
    let call = trees.call("pack the commits").args(&["pack-objects", "-q", "--stdout"]);
    call.args(how).input(which.into_bytes()).to(copy).run()?;
    pack.seek(SeekFrom::Start(0)).map_err(io_error("read", &path))?;
    let call = source.call(&trees.git.certain(), "take over the commits").args(&[
        "unpack-objects",
        "-q",
        "--strict",
    ]);
    call.from(pack).run().map(drop)
}
