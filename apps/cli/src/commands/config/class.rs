//! `tickpath config class`: writes the configuration files of a class's venue and of its students' shells.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use tickpath_config::{TEXT_LEN_MAX, beside, print_stdout, read_text};
use tickpath_exchange::ExchangeConfig;
use toml::{Table, Value};

/// Maximum number of students; a venue allows 256 drop copy connections, and spare ones are needed.
const STUDENTS_MAX: u16 = 200;
/// Connections that each endpoint allows beyond one per student.
const SPARE_CONNECTIONS: usize = 16;
/// The 32 characters of passwords; `l`, `o`, `0` and `1` are left out because they are easily confused.
const PASSWORD_CHARACTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Arguments of `tickpath config class`.
#[derive(clap::Args)]
pub struct Args {
    /// The venue's file to begin with; its users are replaced
    #[arg(default_value = "configs/exchange.toml")]
    file: PathBuf,
    /// Number of students, 1 to 200
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=i64::from(STUDENTS_MAX)))]
    students: u16,
    /// Address of this machine's network interface that the students connect to
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST)]
    address: Ipv4Addr,
    /// New folder for the files
    #[arg(short, long, default_value = "class")]
    output: PathBuf,
}

struct User {
    name: String,
    password: String,
}

/// Writes a venue's file with one user per student, and a shell's file for each student.
///
/// # Errors
/// An invalid or unsuitable venue file, or an output folder that exists or cannot be written. A folder that
/// this call created is removed.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Args { file, students, address, output } = args;
    let width = students.to_string().len().max(2);
    let users = (1..=*students)
        .map(|number| Ok(User { name: format!("STU{number:0width$}"), password: random_password()? }))
        .collect::<anyhow::Result<Vec<User>>>()?;
    let (loaded, _) = ExchangeConfig::load(file)?;
    let instruments = read_text(&beside(file, &loaded.instruments), TEXT_LEN_MAX)?;
    let venue = venue(tickpath_config::load(file)?, &loaded, &users, *address)?;

    DirBuilder::new().mode(0o700).create(output).with_context(|| {
        format!("cannot create the folder {}: choose another with --output", output.display())
    })?;
    let written = write_files(output, &venue, &instruments, &users).inspect_err(|_| {
        // The folder is new, so nothing else is in it.
        let _ = std::fs::remove_dir_all(output);
    });
    let journal = written.with_context(|| format!("cannot write to {}", output.display()))?;
    print_stdout(summary(output, &journal, &users))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the class's venue configuration: `table` with the class's users, and endpoints at `address`.
fn venue(
    mut table: Table,
    loaded: &ExchangeConfig,
    users: &[User],
    address: Ipv4Addr,
) -> anyhow::Result<Table> {
    if loaded.deribit.is_some() {
        bail!(
            "a class trades at a native venue, and the file has a [deribit] table: use configs/exchange.toml"
        );
    }
    let Some(drop_copy) = &loaded.drop_copy else {
        bail!(
            "the shell of a student needs drop copies: add a [drop_copy] table, as in configs/exchange.toml"
        );
    };
    let market_data = &loaded.market_data;
    for (path, endpoint) in [
        (&["order_entry", "address"][..], loaded.order_entry.address),
        (&["drop_copy", "address"], drop_copy.address),
        (&["market_data", "retransmission"], market_data.retransmission),
        (&["market_data", "snapshots", "glimpse"], market_data.snapshots.glimpse),
    ] {
        let port = endpoint.port();
        if port == 0 {
            bail!("{} has port 0, which no student can know: name a port", path.join("."));
        }
        set(&mut table, path, SocketAddrV4::new(address, port).to_string().into());
    }
    set(&mut table, &["market_data", "interface"], address.to_string().into());
    set(&mut table, &["instruments"], "instruments.toml".into());

    let connections = |configured: usize| {
        let count = configured.max(users.len() + SPARE_CONNECTIONS);
        Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    };
    set(&mut table, &["order_entry", "max_connections"], connections(loaded.order_entry.max_connections));
    set(&mut table, &["drop_copy", "max_connections"], connections(drop_copy.max_connections));
    let snapshots = connections(market_data.snapshots.max_connections);
    set(&mut table, &["market_data", "snapshots", "max_connections"], snapshots);

    let mut list: Vec<Value> = Vec::new();
    for User { name, password } in users {
        let ports = ["order_entry", "drop_copy"].map(Value::from);
        list.push(Value::Table(Table::from_iter([
            ("name".to_owned(), name.as_str().into()),
            ("password".to_owned(), password.as_str().into()),
            ("ports".to_owned(), ports.to_vec().into()),
            ("copies_of".to_owned(), vec![Value::from(name.as_str())].into()),
        ])));
    }
    let flow = loaded.background_flow.clone().unwrap_or_default().user;
    list.push(Value::Table(Table::from_iter([
        ("name".to_owned(), flow.into()),
        ("password".to_owned(), random_password()?.into()),
    ])));
    set(&mut table, &["order_entry", "user"], list.into());
    if let Some(Value::Table(entry)) = table.get_mut("order_entry") {
        entry.remove("test_users");
    }
    Ok(table)
}

/// Sets the value at `path`, whose last element is the key. Tables that are missing are added.
fn set(table: &mut Table, path: &[&str], value: Value) {
    match path {
        [] => {}
        [key] => {
            table.insert((*key).to_owned(), value);
        }
        [first, rest @ ..] => {
            let inner = table.entry((*first).to_owned()).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Writes all files; returns the venue's journal folder.
fn write_files(folder: &Path, venue: &Table, instruments: &str, users: &[User]) -> anyhow::Result<PathBuf> {
    write(&folder.join("instruments.toml"), instruments)?;
    let file = folder.join("venue.toml");
    write(&file, &format!("# A venue for a class, by tickpath config class.\n\n{venue}"))?;
    // Load it as the venue will, which fills in the defaults and checks the users.
    let (config, _) = ExchangeConfig::load(&file)?;
    for user in users {
        write(&folder.join(format!("{}.toml", user.name)), &student_file(&config, user))?;
    }
    Ok(config.journal.folder)
}

/// Writes a new file that only its owner can read.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Returns the configuration of a student's shell.
fn student_file(venue: &ExchangeConfig, user: &User) -> String {
    let User { name, password } = user;
    let order_entry = venue.order_entry.address;
    let data = &venue.market_data;
    let drop_copy = venue.drop_copy.as_ref().map_or(order_entry, |settings| settings.address);
    let is_local = order_entry.ip().is_loopback();
    let interface = if is_local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
    let production = if is_local {
        String::new()
    } else {
        "# Required for every venue on another machine.\nproduction = true\n".to_owned()
    };
    format!(
        "# The shell of {name}:  tickpath shell --config {name}.toml\n\
         # The file instruments.toml belongs in the same folder.\n\n\
         url = \"ouch://{order_entry}\"\n\
         client_id = \"{name}\"\n\
         client_secret = \"{password}\"\n\
         {production}\n\
         [native]\n\
         instruments = \"instruments.toml\"\n\
         drop_copy = \"{drop_copy}\"\n\n\
         [native.market_data]\n\
         line_a = \"{}\"\n\
         line_b = \"{}\"\n\
         # The student's own network interface; 0.0.0.0: the system selects it.\n\
         interface = \"{interface}\"\n\
         retransmission = \"{}\"\n\
         glimpse = \"{}\"\n\n\
         [limits]\n\
         order_size_max = \"10000\"\n\
         notional_max = \"1000000\"\n\
         open_orders_max = 50\n",
        data.line_a, data.line_b, data.retransmission, data.snapshots.glimpse
    )
}

fn summary(folder: &Path, journal: &Path, users: &[User]) -> String {
    let (folder, journal) = (folder.display(), journal.display());
    let (Some(first), Some(last)) = (users.first(), users.last()) else { return String::new() };
    let (first, last) = (&first.name, &last.name);
    let count = users.len();
    format!(
        "{folder}/venue.toml: a venue with {count} students\n\
         {folder}/{first}.toml to {last}.toml: one file for each student, with user, password and addresses\n\
         {folder}/instruments.toml: for every student\n\n\
         start:       tickpath exchange --config {folder}/venue.toml --flow\n\
         a student:   tickpath shell --config {first}.toml\n\
         start over:  stop the venue, then rm -r {journal}"
    )
}

/// Returns a password of 10 random characters (50 bits), the maximum length in a login.
fn random_password() -> anyhow::Result<String> {
    let mut bytes = [0; 10];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).context("/dev/urandom")?;
    Ok(bytes.iter().map(|byte| char::from(PASSWORD_CHARACTERS[usize::from(byte % 32)])).collect())
}
