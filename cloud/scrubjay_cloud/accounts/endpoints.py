"""The routes of accounts: signing up and in, the log, and leaving."""

from __future__ import annotations

from scrubjay_cloud.accounts.authentication import login, prelogin, set_password, set_totp
from scrubjay_cloud.accounts.contents import leave, usage
from scrubjay_cloud.accounts.log import append_log, read_checkpoint, read_log
from scrubjay_cloud.accounts.names import set_name
from scrubjay_cloud.accounts.registration import check_sign_up, register
from scrubjay_cloud.accounts.wraps import MAX_INT
from scrubjay_cloud.decoding import whole
from scrubjay_cloud.endpoint import Admits, Endpoint, Query, Takes
from scrubjay_shared.wire import (
    AccountName,
    CheckSignUp,
    DeleteAccount,
    Deleted,
    LogAppend,
    LogCheckpoint,
    Login,
    LogPage,
    Pending,
    Prelogin,
    Register,
    SetName,
    SetPassword,
    SetTotp,
    Usage,
)

ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/register/check",
        summary="Before signing up: whether the name is free and the invitation valid.",
        handler=check_sign_up,
        admits=Admits.ANYONE,
        takes=Takes.JSON,
        record=CheckSignUp,
        status=204,
    ),
    Endpoint(
        method="POST",
        path="/v1/register",
        summary="Sign up: a name, a derived key, and an account log that certifies the first device.",
        handler=register,
        admits=Admits.ANYONE,
        takes=Takes.JSON,
        record=Register,
        most="max_register_bytes",
        answer=Pending,
        status=201,
    ),
    Endpoint(
        method="GET",
        path="/v1/prelogin",
        summary="How a name derives its key.",
        handler=prelogin,
        admits=Admits.ANYONE,
        answer=Prelogin,
        query=(Query(name="username", meaning="a user name", read=str, schema={"type": "string"}, required=True),),
    ),
    Endpoint(
        method="POST",
        path="/v1/login",
        summary="Prove the password: a token for enrolling a device.",
        handler=login,
        admits=Admits.ANYONE,
        takes=Takes.JSON,
        record=Login,
        answer=Pending,
    ),
    Endpoint(
        method="GET",
        path="/v1/log",
        summary="The account log from an entry on.",
        handler=read_log,
        admits=Admits.PENDING,
        refused=True,
        answer=LogPage,
        query=(
            Query(
                name="from",
                meaning="the number of an entry",
                read=whole(0, MAX_INT),
                schema={"type": "integer", "minimum": 0, "maximum": MAX_INT},
                default=0,
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path="/v1/log/checkpoint",
        summary="The newest checkpoint of the account log, with the state that it states.",
        handler=read_checkpoint,
        admits=Admits.PENDING,
        refused=True,
        answer=LogCheckpoint,
        query=(
            Query(
                name="before",
                meaning="the number of the last entry that it may be",
                read=whole(0, MAX_INT),
                schema={"type": "integer", "minimum": 0, "maximum": MAX_INT},
                default=MAX_INT,
            ),
        ),
    ),
    Endpoint(
        method="POST",
        path="/v1/log",
        summary="Append signed entries, if the log still ends where the caller thinks it does.",
        handler=append_log,
        admits=Admits.PENDING,
        refused=True,
        takes=Takes.JSON,
        record=LogAppend,
        answer=LogPage,
    ),
    Endpoint(
        method="PUT",
        path="/v1/account/password",
        summary="Change the password. No data changes.",
        handler=set_password,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=SetPassword,
        status=204,
    ),
    Endpoint(
        method="PUT",
        path="/v1/account/name",
        summary="Give the account another user name; the old one is kept from others for a while.",
        handler=set_name,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=SetName,
        answer=AccountName,
    ),
    Endpoint(
        method="PUT",
        path="/v1/account/totp",
        summary="Set or take away the second factor.",
        handler=set_totp,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=SetTotp,
        status=204,
    ),
    Endpoint(
        method="DELETE",
        path="/v1/account",
        summary="Delete the account and everything it holds.",
        handler=leave,
        admits=Admits.FULL,
        takes=Takes.JSON,
        record=DeleteAccount,
        answer=Deleted,
    ),
    Endpoint(
        method="GET",
        path="/v1/usage",
        summary="What the account holds, and what it may hold.",
        handler=usage,
        admits=Admits.DEVICE,
        answer=Usage,
    ),
)
